/** The versioned API of messages and accounts. */
export { type ApiOptions, apiVersions, createApi } from './app.ts';
