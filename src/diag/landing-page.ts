/** The page at `/`, as data and as HTML: the routes, the other pages of the server, and the first steps with the demo. */
import { shellWord } from '#foundation';
import { html, htmlDocument, type Markup } from '#http';

export interface LandingRoute {
  readonly prefix: string;
  /** Whether a browser can open the prefix: it is not a pattern, and GET is allowed. */
  readonly isLink: boolean;
  /** Whether the service has API documentation at `docs/` below the prefix. */
  readonly hasDocs: boolean;
  readonly needsCredentials: boolean;
}

export interface LandingStep {
  readonly title: string;
  readonly path: string;
  readonly description: string;
  /** The user whose credentials the request needs, if it needs any. `post`: what it sends, and to which path. */
  readonly command: { readonly user?: string; readonly post?: { readonly path: string; readonly body: object } };
}

export interface DemoUser {
  readonly name: string;
  readonly password: string;
  readonly isAdmin: boolean;
}

export interface Landing {
  /** The URL of the server, without a trailing slash. All paths are below it. */
  readonly root: string;
  /** The name of the user. Undefined if no user has signed in, or if the auth service gave no name. */
  readonly user: string | undefined;
  readonly isSignedIn: boolean;
  /** Whether signing in shows more routes. */
  readonly canSignIn: boolean;
  /** Whether the browser sent a password, which it can forget. */
  readonly canSignOut: boolean;
  /** The routes that the user may see. */
  readonly routes: readonly LandingRoute[];
  /** Whether there are pages for administrators. */
  readonly hasDiagnostics: boolean;
  /** The users of the demo, whose passwords are published. Empty if it is not the demo. */
  readonly demoUsers: readonly DemoUser[];
  readonly steps: readonly LandingStep[];
}

interface OtherPage {
  readonly title: string;
  readonly path: string;
  readonly description: string;
  readonly forAdmins: boolean;
}

const pagesForAdmins: readonly OtherPage[] = [
  { title: 'Diagnostics', path: '/gateway/v0/diag/', description: 'the live state of this gateway', forAdmins: true },
  {
    title: 'Explain a request',
    path: '/gateway/v0/explain',
    description: 'how this gateway would handle it',
    forAdmins: true,
  },
  { title: 'Metrics', path: '/gateway/v0/metrics', description: 'the figures for Prometheus', forAdmins: true },
];

const pagesForAll: readonly OtherPage[] = [
  {
    title: 'Problems',
    path: '/gateway/v0/problems/',
    description: 'what the errors mean, and what to do about them',
    forAdmins: false,
  },
  {
    title: 'Readiness',
    path: '/gateway/v0/check_ready',
    description: 'whether this server can take requests',
    forAdmins: false,
  },
];

function otherPages({ hasDiagnostics }: Landing): readonly OtherPage[] {
  return [...(hasDiagnostics ? pagesForAdmins : []), ...pagesForAll];
}

/** The same links as on the page, as absolute URLs, for clients other than browsers. */
export function landingData(landing: Landing) {
  const { root, user, canSignIn, routes, demoUsers, steps } = landing;
  return {
    title,
    url: `${root}/`,
    ...(user !== undefined && { user }),
    routes: routes.map((route) => ({
      path: route.prefix,
      ...(route.isLink && { url: root + route.prefix }),
      ...(route.hasDocs && { docs: root + docsOf(route) }),
      credentials: route.needsCredentials ? 'required' : 'none',
    })),
    ...(canSignIn && { sign_in: `${root}/?sign-in` }),
    pages: otherPages(landing).map(({ title, path, description, forAdmins }) => ({
      title,
      url: root + path,
      description,
      credentials: forAdmins ? 'administrator' : 'none',
    })),
    ...(demoUsers.length > 0 && { demo_users: demoUsers.map(({ name, password }) => ({ name, password })) }),
    ...(steps.length > 0 && {
      first_steps: steps.map((step) => ({
        title: step.title,
        url: root + step.path,
        command: commandOf(step, landing),
      })),
    }),
  };
}

const title = 'API gateway';

/** All links are relative, so that they work behind a proxy that strips a prefix. */
export function landingPage(landing: Landing): string {
  const { routes, demoUsers, steps } = landing;
  const main = html`<p class="lead">This gateway forwards each request to the service that handles its path.</p>
${session(landing)}
${demoUsers.length > 0 && firstSteps(demoUsers, steps, landing)}
${routes.length > 0 ? routeTable(routes, landing) : html`<p>All routes need credentials.</p>`}
<h2>About this server</h2>
<ul class="bare about">
${otherPages(landing).map(
  ({ title, path, description, forAdmins }) =>
    html`<li><a href=".${path}">${title}</a>: ${description}${forAdmins && ', for administrators'}</li>\n`,
)}<li>Configuration: <code>config/README.md</code> in the package explains every record, <code>npx frontdesk --help</code> every setting</li>
</ul>`;
  return htmlDocument({ title, main });
}

/** Shown with the 401 on which a browser forgets the password that it has sent. */
export function signedOutPage(): string {
  return htmlDocument({
    title: 'Signed out',
    main: html`<p class="lead">Your browser has forgotten the password for this server.</p>
<p>If it asks for one again, press Cancel. If <a href="./">the home page</a> still shows your name, close all windows of the browser: some keep
passwords until then.</p>`,
  });
}

function session({ user, isSignedIn, canSignIn, canSignOut }: Landing): Markup | undefined {
  if (canSignIn)
    return html`<p class="session"><a href="?sign-in">Sign in</a> for the routes that need credentials.</p>`;
  if (!isSignedIn) return undefined;
  return html`<p class="session">Signed in${user !== undefined && html` as <b>${user}</b>`}.${
    canSignOut &&
    html` <a href="?sign-out">Sign out</a> <span class="hint">(the browser then asks for a password: press Cancel)</span>`
  }</p>`;
}

function firstSteps(users: readonly DemoUser[], steps: readonly LandingStep[], landing: Landing): Markup {
  return html`<section class="panel" aria-labelledby="demo">
<h2 id="demo">Try the demo</h2>
<p>User names and passwords: ${users.map(
    ({ name, password, isAdmin }, index) =>
      html`${index > 0 && ', '}<code>${name}</code> / <code>${password}</code>${isAdmin && ' (an administrator)'}`,
  )}.</p>
<ol class="steps">
${steps.map(
  (step) => html`<li><a href=".${step.path}">${step.title}</a>. ${step.description}
<pre><code>${commandOf(step, landing)}</code></pre></li>
`,
)}</ol>
</section>`;
}

function commandOf({ path, command: { user, post } }: LandingStep, { root, demoUsers }: Landing): string {
  const { name, password } = demoUsers.find((one) => one.name === user) ?? {};
  const credentials = name === undefined ? '' : `-u ${name}:${password} `;
  const body = post && `-H 'Content-Type: application/json' -d ${shellWord(JSON.stringify(post.body))} `;
  const url = (root + (post?.path ?? path)).replaceAll("'", '%27');
  return `curl ${credentials}${body ?? ''}${/^[\w:/.-]+$/.test(url) ? url : `'${url}'`}`;
}

function routeTable(routes: readonly LandingRoute[], landing: Landing): Markup {
  return html`<h2>Routes</h2>
<table>
<thead><tr><th scope="col">Path</th><th scope="col">Documentation</th><th scope="col">Credentials</th></tr></thead>
<tbody>
${routes.map((route) => routeRow(route, landing))}</tbody>
</table>`;
}

function routeRow(route: LandingRoute, { isSignedIn }: Landing): Markup {
  const path = html`<code>${route.prefix}</code>`;
  const needed = isSignedIn ? 'required' : html`<span class="chip">sign in</span>`;
  return html`<tr><th scope="row">${route.isLink ? html`<a href=".${route.prefix}">${path}</a>` : path}</th><td>${route.hasDocs && html`<a href=".${docsOf(route)}">API docs</a>`}</td><td data-label="Credentials">${route.needsCredentials ? needed : 'not required'}</td></tr>
`;
}

function docsOf({ prefix }: LandingRoute): string {
  return `${prefix.replace(/\/$/, '')}/docs/`;
}
