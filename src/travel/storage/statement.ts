/** Statements that are compiled once and run many times with different values, and the cache that bounds them. */
import type { CompiledQuery, Kysely, QueryResult } from 'kysely';
import { createBoundedMap } from '#foundation';

/** Creates a placeholder for a value in a query. On each run, `read` gets the value from the input. */
export type Slot<Input> = <Value>(read: (input: Input) => Value) => Value;

/** Runs the statement on a database or in a transaction. */
export type Statement<Input, Row = unknown> = (kysely: Executor, input: Input) => Promise<QueryResult<Row>>;

export type Executor = Pick<Kysely<unknown>, 'executeQuery' | 'getExecutor'>;

/** A query made with Kysely's query builder or its `sql` tag. */
interface Query<Row> {
  readonly compile: (kysely: Executor) => CompiledQuery<Row>;
}

/** Bounds the cache of a statement, because clients choose filters, orders and lengths, and thereby the SQL. */
const compiledMax = 64;

/**
 * Creates a statement. `build` returns the query for an input, with a slot for each value. It is called once per shape,
 * so inputs with the same shape must have the same query apart from the values of its slots.
 */
export function createStatement<Input, Row = unknown>(
  build: (slot: Slot<Input>, input: Input) => Query<Row>,
  shapeOf: (input: Input) => string | number = () => '',
): Statement<Input, Row> {
  const compiled = createBoundedMap<string, CompiledStatement<Input, Row>>(compiledMax);
  return function run(kysely, input) {
    const compile = () => compileSlots<Input, Row>(build(slotOf, input).compile(kysely));
    const { query, reads } = compiled.getOrCreate(String(shapeOf(input)), compile);
    return kysely.executeQuery<Row>({ ...query, parameters: reads.map((read) => read(input)) });
  };
}

interface CompiledStatement<Input, Row> {
  readonly query: CompiledQuery<Row>;
  /** Returns the parameters, in the order of the SQL. */
  readonly reads: readonly ((input: Input) => unknown)[];
}

const readKey = Symbol('read');

interface SlotValue<Input> {
  readonly [readKey]: (input: Input) => unknown;
}

/** Returns a marker object that Kysely treats as a value and turns into a parameter. */
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
