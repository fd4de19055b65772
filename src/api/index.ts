/** The versioned API of messages and accounts. */
export { apiVersions, createApi } from './api.ts';
export type { VersionAppOptions } from './version-app.ts';
