/** The composition root: creates a server from all modules. */
export { createFrontdesk, openFrontdesk } from './frontdesk.ts';
export {
  type CloseOptions,
  type Frontdesk,
  type FrontdeskOptions,
  type Listeners,
  type Listening,
  resolveOptions,
} from './options.ts';
