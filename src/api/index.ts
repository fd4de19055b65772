/** The versioned API of messages and accounts. */
export { type ApiOptions, type ApiVersion, createApi } from './app.ts';
