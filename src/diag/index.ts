/** The gateway's state, for people and for monitoring: diagnostics, their events, and a page for each problem. */
export type { Diagnostics } from './diagnostics.ts';
export { createDiagnostics } from './endpoint.ts';
export { createDiagnosticsEvents } from './events.ts';
export { type LandingRoute, landingPage } from './landing-page.ts';
export { createProblemPages, problemPagesPath } from './problem-pages.ts';
