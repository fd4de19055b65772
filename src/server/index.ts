/** The composition root: every module put together into one server, and run. */
export { createFrontdesk } from './frontdesk.ts';
export type { Frontdesk, FrontdeskOptions, Listeners, Listening } from './options.ts';
