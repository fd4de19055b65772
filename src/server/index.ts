/** The composition root: every module put together into one server, and run. */
export { createFrontdesk, openFrontdesk } from './frontdesk.ts';
export {
  type CloseOptions,
  type Frontdesk,
  type FrontdeskOptions,
  type Listeners,
  type Listening,
  resolveOptions,
} from './options.ts';
