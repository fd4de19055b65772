/** Renders the page at `/`, which lists the routes and the other pages of the server. */
import { html, htmlDocument, type Markup } from '#http';

export interface LandingRoute {
  readonly prefix: string;
  /** Whether a browser can open the prefix: it is not a pattern, and GET is allowed. */
  readonly isLink: boolean;
  /** Whether the service has API documentation at `docs/` below the prefix. */
  readonly hasDocs: boolean;
  readonly needsCredentials: boolean;
}

export interface Landing {
  /** The routes that the user may see. */
  readonly routes: readonly LandingRoute[];
  /** Whether signing in shows more routes. */
  readonly canSignIn: boolean;
  /** Whether there are pages for administrators. */
  readonly hasDiagnostics: boolean;
}

/** All links are relative, so that they work behind a proxy that strips a prefix. */
export function landingPage({ routes, canSignIn, hasDiagnostics }: Landing): string {
  const main = html`<p class="lead">This gateway forwards each request to the service that handles its path.</p>
${routes.length > 0 ? routeTable(routes) : html`<p>All routes need credentials.</p>`}
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
