/** The problems of the travel services, in addition to those of the gateway. */
import type { ProblemTable } from '#http';

export const travelProblems = {
  'sold-out': {
    status: 409,
    meaning: 'The requested room or car is sold out.',
    remedy: 'Book one of `alternatives`, or other dates.',
  },
  'too-many-holds': {
    status: 409,
    retryAfterSeconds: 1,
    meaning: 'You already have as many unconfirmed bookings as one user may hold.',
    remedy:
      'Confirm or cancel one of them, or try again after the number of seconds in `Retry-After`, when one expires.',
  },
  'too-many-units': {
    status: 409,
    meaning: 'Your bookings already include as many rooms or cars on that day as one user may book.',
    remedy: 'Book other days, or cancel a booking; `detail` names the day.',
  },
} as const satisfies ProblemTable;
