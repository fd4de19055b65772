/** Version 1 of the API: how it shows messages and accounts. */
export { v1 } from './representation.ts';
