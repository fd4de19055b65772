/** The problems of bookings. */
import { defineProblems } from '#http';
import { travelProblems } from '../problems.ts';

export const bookingProblems = defineProblems(travelProblems);

export const { problem: bookingProblem } = bookingProblems;
