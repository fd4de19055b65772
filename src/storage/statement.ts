/** Statements that are compiled once and run again with other values. */
import type { CompiledQuery, Kysely, QueryResult } from 'kysely';
import { createRecent } from './recent.ts';

/** Takes the place of a value in a query, and reads it from the input of each run. */
export type Slot<Input> = <Value>(read: (input: Input) => Value) => Value;

/** Runs on a database, or in a transaction. */
export type Statement<Input, Row = unknown> = (kysely: Executor, input: Input) => Promise<QueryResult<Row>>;

export type Executor = Pick<Kysely<unknown>, 'executeQuery' | 'getExecutor'>;

/** A query of a builder, or one written with `sql`. */
interface Query<Row> {
  readonly compile: (kysely: Executor) => CompiledQuery<Row>;
}

/** Clients choose filters, orders and lengths, and so the SQL: beyond this many texts, the least recently used is dropped. */
const compiledMax = 64;

/**
 * `build` makes the query for an input, with a slot for each of its values. It is called once for all inputs of a shape:
 * those whose queries differ in nothing but the values of slots.
 */
export function createStatement<Input, Row = unknown>(
  build: (slot: Slot<Input>, input: Input) => Query<Row>,
  shapeOf: (input: Input) => string | number = () => '',
): Statement<Input, Row> {
  const recall = createRecent<CompiledStatement<Input, Row>>(compiledMax);
  return function run(kysely, input) {
    const compile = () => compileSlots<Input, Row>(build(slotOf, input).compile(kysely));
    const { query, reads } = recall(String(shapeOf(input)), compile);
    return kysely.executeQuery<Row>({ ...query, parameters: reads.map((read) => read(input)) });
  };
}

interface CompiledStatement<Input, Row> {
  readonly query: CompiledQuery<Row>;
  /** The parameters, in the order of the SQL. */
  readonly reads: readonly ((input: Input) => unknown)[];
}

const readKey = Symbol('read');

interface SlotValue<Input> {
  readonly [readKey]: (input: Input) => unknown;
}

/** For Kysely it is a value, which becomes a parameter. */
function slotOf<Input, Value>(read: (input: Input) => Value): Value {
  return { [readKey]: read } satisfies SlotValue<Input> as unknown as Value;
}

function compileSlots<Input, Row>(query: CompiledQuery<Row>): CompiledStatement<Input, Row> {
  const reads = query.parameters.map((value) => (isSlot<Input>(value) ? value[readKey] : () => value));
  return { query, reads };
}

function isSlot<Input>(value: unknown): value is SlotValue<Input> {
  return typeof value === 'object' && value !== null && readKey in value;
}
