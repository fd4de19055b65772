/** The links of a page to the pages around it: those above and below, the API docs, and the items that its ids identify. */
import type { Context } from 'koa';
import { homeOf, requestContext } from '../context.ts';
import type { PageLink, PagePlace } from './pages.ts';

/** A page of an app. The path may contain parameters, such as `/orders/:id`. */
interface AppPage {
  readonly path: string;
  readonly title: string;
}

/** What an app knows about the pages around one of its own. The same for every request. */
export interface PageRoute {
  /** The pages above, outermost first. */
  readonly above: readonly AppPage[];
  /** The lists below. */
  readonly below: readonly AppPage[];
  readonly hasDocs: boolean;
  /** The paths of collections from the app's root, such as `orders/`, by the field that identifies one of their items. */
  readonly collections: Readonly<Record<string, string>>;
}

/** Returns the place of a page of an app or, without `route`, of one that is no part of an app. */
export function placeOf(ctx: Context, route?: PageRoute): PagePlace {
  const { basePath } = requestContext(ctx);
  const home = homeOf(ctx);
  const linkTo = linksBelow(basePath, ctx.path);
  const own = basePath + ctx.path;
  const inApp = route?.above.map(linkTo) ?? [];
  // The root of an app may be the home page.
  const isHomeAbove = home !== undefined && home !== own && !inApp.some(({ href }) => href === home);
  const docs = docsOf(basePath, home, route);
  return {
    above: [...(isHomeAbove ? [{ href: home, text: 'Home' }] : []), ...inApp.filter(({ href }) => href !== own)],
    related: [...(route?.below.map(linkTo) ?? []), ...(docs === undefined ? [] : [docs])],
    itemOf(field, value) {
      const collection = route?.collections[field];
      if (collection === undefined || (typeof value !== 'string' && typeof value !== 'number')) return undefined;
      return `${basePath}/${collection}${encodeURIComponent(value)}`;
    },
  };
}

function docsOf(basePath: string, home: string | undefined, route: PageRoute | undefined): PageLink | undefined {
  if (route?.hasDocs) return { href: `${basePath}/docs/`, text: 'API docs' };
  return home === undefined ? undefined : { href: home, text: 'All routes and API docs' };
}

/** Fills the parameters of a path with the segments of the current one. An item is named by its segment. */
function linksBelow(basePath: string, current: string): (page: AppPage) => PageLink {
  const segments = current.split('/');
  return ({ path, title }) => {
    const parts = path.split('/');
    const filled = parts.map((part, index) => (part.startsWith(':') ? (segments[index] ?? '') : part));
    // The title of an item may be a function of its row, which is unknown here.
    const isItem = title === '' || parts.at(-1)?.startsWith(':') === true;
    return { href: basePath + filled.join('/'), text: isItem ? decoded(filled.at(-1) ?? '') : title };
  };
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
