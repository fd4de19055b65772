/** The versioned API of messages and accounts. */
export { createApi } from './api.ts';
export type { VersionAppOptions } from './version-app.ts';
