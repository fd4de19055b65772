/** Creates the problems of bookings. */
import { defineProblems } from '#http';
import { travelProblems } from '../problems.ts';

export const { problem: bookingProblem } = defineProblems(travelProblems);
