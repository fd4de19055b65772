/** The log on standard output: its blocks, its bound, and what happens when the reader stalls or the disk is full. */
import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { createFileOutput, type LogOutput, openLog } from '../../../src/cli/log/output.ts';
import { eventually } from '../../support/waiting.ts';

/** An output whose reader takes data only when the test says so. */
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
    /** Reads everything that waits, and everything that is then written because of it. */
    async readOn() {
      while (output.writableLength > 0 || take !== undefined) {
        take?.();
        await new Promise(setImmediate);
      }
    },
  };
}

const options = { level: 'info', base: null };

/** Returns everything that `log` has written when it is flushed. */
async function writtenBy(log: (logger: LogOutput['logger']) => void, base: object | null = null): Promise<string> {
  const { output, taken, readOn } = createReader();
  const { logger, flush } = openLog(output, { ...options, base });
  log(logger);
  const flushed = flush();
  await readOn();
  await flushed;
  return taken();
}

const linesOf = (text: string) => text.split('\n').filter((line) => line !== '');

describe('the log on standard output', () => {
  it('is written in blocks, the last one by flush', async () => {
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

  it('keeps the order of lines, including those longer than a block and those that are not JSON', async () => {
    const long = 'ü'.repeat(70_000);
    const written = await writtenBy((logger) => {
      logger.info('one');
      logger.info(long);
      logger.writeLine('127.0.0.1 - -');
    });
    const [one = '', two = '', ...rest] = linesOf(written);
    assert.deepEqual([JSON.parse(one).msg, JSON.parse(two).msg, ...rest], ['one', long, '127.0.0.1 - -']);
  });

  for (const base of [null, { module: 'gateway' }]) {
    it(`contains the same line from infoPlain as from info, with the base fields ${JSON.stringify(base)}`, async () => {
      const fields = { path: '/"quoted"\n\\ü\u{1f600}\ud800', status: 200, tls: undefined, isLast: false, user: null };
      const written = await writtenBy((logger) => {
        logger.info(fields, 'request');
        logger.infoPlain(fields, 'request');
      }, base);
      const [one, two] = linesOf(written).map((line) => line.replace(/"time":\d+/, '"time":0'));
      assert.equal(two, one);
    });
  }

  it('is bounded while the reader is stalled, and then reports how many lines were dropped', async () => {
    const { output, taken, readOn } = createReader();
    const { logger, writeBlock } = openLog(output, options);
    const written = 2_000;
    for (let count = 0; count < written; count += 1) logger.info({ count }, 'x'.repeat(10_000));
    assert.ok(output.writableLength <= 8 * 1024 * 1024);
    const dropped = logger.droppedLines();
    assert.ok(dropped > 0);
    await readOn();
    writeBlock();
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

  it('counts the lines that do not fit on a full disk, and reports them when there is space again', async () => {
    let isFull = true;
    let taken = '';
    // Like standard output, it can be written to after an error.
    const output = Object.assign(new Writable(), {
      write(text: unknown, done: (error?: Error) => void) {
        if (!isFull) taken += text;
        setImmediate(done, isFull ? new Error('ENOSPC') : undefined);
        return true;
      },
    });
    const { logger, writeBlock } = openLog(output, options);
    for (const line of ['one', 'two', 'three'.repeat(20_000)]) logger.info(line);
    writeBlock();
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    assert.equal(logger.droppedLines(), 3);
    isFull = false;
    logger.info('four');
    for (let count = 0; count < 2; count += 1) {
      writeBlock();
      await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    }
    const [four, report] = linesOf(taken).map((line) => JSON.parse(line));
    assert.deepEqual([four.msg, report.lines], ['four', 3]);
  });

  it('resumes where a file was cut off when the disk has space again, without losing a line', async () => {
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
    const { logger, writeBlock } = openLog(output, options);
    for (const line of ['one', 'two', 'three']) logger.info(line);
    writeBlock();
    logger.info('four');
    writeBlock();
    await eventually(() => assert.ok(reports.length > 1));
    assert.equal(taken.length, 100);
    room = 1000;
    await eventually(() => assert.equal(output.writableLength, 0));
    const lines = linesOf(taken).map((line) => JSON.parse(line).msg);
    assert.deepEqual([lines, logger.droppedLines()], [['one', 'two', 'three', 'four'], 0]);
    assert.deepEqual(new Set(reports), new Set(['ENOSPC']));
  });

  it('contains an error and its cause, each with its own message and code', async () => {
    const cause = Object.assign(new Error('certificate has expired'), { code: 'CERT_HAS_EXPIRED' });
    const err = new Error(`${cause.message}: renew it`, { cause });
    const written = await writtenBy((logger) => logger.warn({ err }, 'failed'));
    const { err: logged } = JSON.parse(written);
    assert.deepEqual([logged.message, logged.cause.code], ['certificate has expired: renew it', 'CERT_HAS_EXPIRED']);
  });

  it('does not keep the process alive when its output is not read', async () => {
    const { output } = createReader();
    const { logger, flush } = openLog(output, options);
    logger.info('unread');
    await flush();
    assert.ok(output.writableLength > 0);
  });
});
