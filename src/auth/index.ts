/** Who is calling: Basic credentials, users and password hashes, and the auth service with its two faces. */
export type { AuthAnswer, AuthPort, AuthRequest } from './auth-port.ts';
