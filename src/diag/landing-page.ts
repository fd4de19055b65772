/** The page at `/` of a server: what it is, where it leads, and its other pages. */
import { html, htmlDocument, type Markup } from '#http';

export interface LandingRoute {
  readonly prefix: string;
  /** Whether a browser can open the prefix: it is no pattern, and takes GET. */
  readonly isLink: boolean;
  /** Whether the description of its API is below it, at `docs/`. */
  readonly hasDocs: boolean;
  readonly needsCredentials: boolean;
}

export interface Landing {
  /** Those that the caller may see. */
  readonly routes: readonly LandingRoute[];
  /** Whether there are more for those who sign in. */
  readonly canSignIn: boolean;
  /** Whether administrators have pages here. */
  readonly hasDiagnostics: boolean;
}

/** All links are relative, so that they hold behind a proxy that takes a prefix off. */
export function landingPage({ routes, canSignIn, hasDiagnostics }: Landing): string {
  const main = html`<p class="lead">This gateway forwards each request to the service that handles its path.</p>
${routes.length > 0 ? routeTable(routes) : html`<p>There is no route that needs no credentials.</p>`}
${canSignIn && html`<p><a href="?sign-in">Sign in</a> to see the routes that need credentials.</p>`}
<h2>About this server</h2>
<ul class="bare">
${
  hasDiagnostics &&
  html`<li><a href="gateway/v0/diag/">Diagnostics</a>: the live state of this gateway, for administrators</li>
<li><a href="gateway/v0/explain">Explain a request</a>: how this gateway would handle it, for administrators</li>\n`
}<li><a href="gateway/v0/problems/">Problems</a>: what the errors mean, and what to do about them</li>
<li><a href="gateway/v0/check_ready">Readiness</a>: whether this server can take requests</li>
</ul>`;
  return htmlDocument({ title: 'API gateway', main });
}

function routeTable(routes: readonly LandingRoute[]): Markup {
  return html`<h2>Routes</h2>
<table>
<thead><tr><th scope="col">Path</th><th scope="col">Documentation</th><th scope="col">Credentials</th></tr></thead>
<tbody>
${routes.map(routeRow)}</tbody>
</table>`;
}

function routeRow({ prefix, isLink, hasDocs, needsCredentials }: LandingRoute): Markup {
  const path = html`<code>${prefix}</code>`;
  const below = `.${prefix}`.replace(/\/$/, '');
  return html`<tr><th scope="row">${isLink ? html`<a href=".${prefix}">${path}</a>` : path}</th><td>${hasDocs && html`<a href="${below}/docs/">API docs</a>`}</td><td data-label="Credentials">${needsCredentials ? 'required' : 'not required'}</td></tr>
`;
}
