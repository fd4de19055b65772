/** Version 2 of the API: how it shows messages and accounts. */
export { v2 } from './representation.ts';
