/** The versioned API of messages and accounts. */
export { type ApiVersion, createApi } from './messages.ts';
