/** The problems of the gateway and of travel, which the pages about problems show. */
import { type ProblemTable, problems } from '#http';
import { travelProblems } from '#travel';

/** Every problem, in the order of the statuses. */
export const problemTable: ProblemTable = Object.fromEntries(
  [...Object.entries(problems), ...Object.entries(travelProblems)].toSorted(
    ([, one], [, other]) => one.status - other.status,
  ),
);
