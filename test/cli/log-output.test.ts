import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { createFileOutput } from '../../src/cli/file-output.ts';
import { openLog } from '../../src/cli/log-output.ts';
import { eventually } from '../support/waiting.ts';

/** An output whose reader takes a block when the test says so. */
function createReader() {
  let taken = '';
  let take: (() => void) | undefined;
  const output = new Writable({
    decodeStrings: false,
    write(text, _encoding, done) {
      take = () => {
        take = undefined;
        taken += text;
        done();
      };
    },
  });
  return {
    output,
    taken: () => taken,
    /** Everything that waits, and what is written because of it. */
    async readOn() {
      while (output.writableLength > 0 || take !== undefined) {
        take?.();
        await new Promise(setImmediate);
      }
    },
  };
}

const options = { level: 'info', base: null };
const linesOf = (text: string) => text.split('\n').filter((line) => line !== '');

describe('the log on the standard output', () => {
  it('goes out in blocks, the last at the end', async () => {
    const { output, taken, readOn } = createReader();
    const { logger, flush } = openLog(output, options);
    logger.info('one');
    logger.info('two');
    assert.equal(output.writableLength, 0);
    const flushed = flush();
    await readOn();
    await flushed;
    assert.equal(linesOf(taken()).length, 2);
    assert.equal(logger.droppedLines(), 0);
  });

  it('keeps the order of lines that are longer than a block, and of those that are not JSON', async () => {
    const { output, taken, readOn } = createReader();
    const { logger, flush } = openLog(output, options);
    const long = 'ü'.repeat(70_000);
    logger.info('one');
    logger.info(long);
    logger.writeLine('127.0.0.1 - -');
    const flushed = flush();
    await readOn();
    await flushed;
    const [one = '', two = '', ...rest] = linesOf(taken());
    assert.deepEqual([JSON.parse(one).msg, JSON.parse(two).msg, ...rest], ['one', long, '127.0.0.1 - -']);
  });

  for (const base of [null, { module: 'gateway' }]) {
    it(`has the same line of plain fields from infoPlain as from info, with ${JSON.stringify(base)} in each`, async () => {
      const { output, taken, readOn } = createReader();
      const { logger, flush } = openLog(output, { level: 'info', base });
      const fields = { path: '/"quoted"\n\\ü\u{1f600}\ud800', status: 200, tls: undefined, isLast: false, user: null };
      logger.info(fields, 'request');
      logger.infoPlain(fields, 'request');
      const flushed = flush();
      await readOn();
      await flushed;
      const [one, two] = linesOf(taken()).map((line) => line.replace(/"time":\d+/, '"time":0'));
      assert.equal(two, one);
    });
  }

  it('is bounded while its reader takes nothing, and says how much is missing when it reads on', async () => {
    const { output, taken, readOn } = createReader();
    const { logger, pass } = openLog(output, options);
    const written = 2_000;
    for (let count = 0; count < written; count += 1) logger.info({ count }, 'x'.repeat(10_000));
    assert.ok(output.writableLength <= 8 * 1024 * 1024);
    const dropped = logger.droppedLines();
    assert.ok(dropped > 0);
    await readOn();
    pass();
    await readOn();
    const lines = linesOf(taken()).map((line) => JSON.parse(line));
    assert.equal(lines.filter(({ count }) => count !== undefined).length, written - dropped);
    const reports = lines.filter(({ level }) => level === 40);
    assert.deepEqual(
      reports.map(({ lines: missing }) => missing),
      [dropped],
    );
    logger.info('again');
    assert.equal(logger.droppedLines(), dropped);
  });

  it('counts the lines that a full disk does not take, and says so when there is room again', async () => {
    let isFull = true;
    let taken = '';
    // As standard output does, which takes more after an error.
    const output = Object.assign(new Writable(), {
      write(text: unknown, done: (error?: Error) => void) {
        if (!isFull) taken += text;
        setImmediate(done, isFull ? new Error('ENOSPC') : undefined);
        return true;
      },
    });
    const { logger, pass } = openLog(output, options);
    for (const line of ['one', 'two', 'three'.repeat(20_000)]) logger.info(line);
    pass();
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    assert.equal(logger.droppedLines(), 3);
    isFull = false;
    logger.info('four');
    for (let count = 0; count < 2; count += 1) {
      pass();
      await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    }
    const [four, report] = linesOf(taken).map((line) => JSON.parse(line));
    assert.deepEqual([four.msg, report.lines], ['four', 3]);
  });

  it('goes on where a file was cut when its disk has room again, and loses no line', async () => {
    let room = 100;
    let taken = '';
    const reports: unknown[] = [];
    const output = createFileOutput({
      write(bytes) {
        const part = bytes.subarray(0, room);
        if (part.length === 0) throw new Error('ENOSPC');
        room -= part.length;
        taken += part;
        return part.length;
      },
      report: (error) => reports.push(Object(error).message),
      retryMs: 1,
    });
    const { logger, pass } = openLog(output, options);
    for (const line of ['one', 'two', 'three']) logger.info(line);
    pass();
    logger.info('four');
    pass();
    await eventually(() => assert.ok(reports.length > 1));
    assert.equal(taken.length, 100);
    room = 1000;
    await eventually(() => assert.equal(output.writableLength, 0));
    const lines = linesOf(taken).map((line) => JSON.parse(line).msg);
    assert.deepEqual([lines, logger.droppedLines()], [['one', 'two', 'three', 'four'], 0]);
    assert.deepEqual(new Set(reports), new Set(['ENOSPC']));
  });

  it('does not keep the process from ending when its output is not read', async () => {
    const { output } = createReader();
    const { logger, flush } = openLog(output, options);
    logger.info('unread');
    await flush();
    assert.ok(output.writableLength > 0);
  });
});
