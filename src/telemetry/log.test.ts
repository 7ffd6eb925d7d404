import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, it } from 'node:test'
import { PortError } from '#ports/port-error.ts'
import { createLogger, formatTerminalLine, type Logger } from './log.ts'

/** @returns the line written for an error, and its fields. */
function logged(err: unknown) {
  let line = ''
  const write = (text: string) => {
    line += text
  }
  createLogger({ level: 'info', process: 'serve' }, { write }).error({ err }, 'events cannot be accepted')
  return { line, err: JSON.parse(line).err as Record<string, unknown> }
}

function countOf(text: string, within: string): number {
  return within.split(text).length - 1
}

it('exitAfterLogging writes all lines in order, even if the thread that writes is busy with the first', () => {
  const code = `
    import { pbkdf2 } from 'node:crypto'
    import { createLogger, exitAfterLogging } from ${JSON.stringify(new URL('./log.ts', import.meta.url).href)}
    const logger = createLogger({ level: 'info', process: 'serve' })
    pbkdf2('', '', 200_000, 64, 'sha512', () => {})
    for (const line of ['first', 'second', 'last']) logger.info(line)
    exitAfterLogging(logger, 7)`
  const { stdout, status } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    encoding: 'utf8',
    env: { ...process.env, NODE_TEST_CONTEXT: undefined, UV_THREADPOOL_SIZE: '1' },
  })
  assert.deepEqual([status, stdout.match(/(?<="msg":")\w+/g)], [7, ['first', 'second', 'last']])
})

describe('the log line of an error', () => {
  it('has each message once, with codes and the stack of the root cause', () => {
    const cause = new Error('the log has reached its limit')
    const { line, err } = logged(new PortError('event-log', 'full', cause))
    assert.equal(countOf('the log has reached its limit', line), 1, line)
    assert.equal(err.message, 'event-log: full: the log has reached its limit')
    assert.deepEqual([err.type, err.port, err.code, err.retryable], ['PortError', 'event-log', 'full', false])
    assert.match(String(err.stack), /^ {4}at .*log\.test\.ts/)
  })

  it('adds the messages of its causes, even of circular ones', () => {
    const refused = Object.assign(new AggregateError([], ''), { code: 'ECONNREFUSED' })
    const { err } = logged(new Error('fetch failed', { cause: new Error('connect', { cause: refused }) }))
    assert.equal(err.message, 'fetch failed: connect: ECONNREFUSED')
    const circle = new Error('round')
    circle.cause = circle
    assert.equal(logged(circle).err.message, 'round')
    assert.equal(logged('no error').err, 'no error')
  })
})

describe('a JSON log line', () => {
  it('has the name of its level, and the time in UTC', () => {
    const lines: string[] = []
    const logger = createLogger({ level: 'debug', process: 'serve' }, { write: line => void lines.push(line) })
    logger.debug('a')
    logger.warn({ requestId: 'x' }, 'b')
    const [first, second] = lines.map(line => JSON.parse(line))
    assert.equal(first.level, 'debug')
    assert.deepEqual(
      { ...second, time: null },
      { level: 'warn', time: null, process: 'serve', requestId: 'x', msg: 'b' },
    )
    assert.match(second.time, /^\d{4}-\d\d-\d\dT.*Z$/)
  })
})

/** The text of logged lines on a terminal. */
function shown(log: (logger: Logger) => void, inColour = false): string {
  let text = ''
  const write = (line: string) => {
    text += formatTerminalLine(line, { inColour })
  }
  log(createLogger({ level: 'info', process: 'work' }, { write }))
  return text
}

describe('a log line on a terminal', () => {
  it('starts with time, level, process and message, followed by the other fields', () => {
    const line = shown(logger => logger.warn({ lane: 'main', offset: 12, what: 'two words' }, 'processing waits'))
    assert.match(
      line,
      /^\d\d:\d\d:\d\d\.\d{3} {2}warn {3}work {3}processing waits {2}lane=main {2}offset=12 {2}what="two words"\n$/,
    )
  })

  it('shows an error after the message, and its stack below', () => {
    const error = Object.assign(new Error('no route'), { code: 'EHOSTUNREACH' })
    const [first, second] = shown(logger => logger.error({ err: error }, 'the store is away')).split('\n')
    assert.match(first!, /error {2}work {3}the store is away: no route {2}type=Error {2}code=EHOSTUNREACH$/)
    assert.match(second!, /^ {4}at .*log\.test\.ts/)
    assert.match(
      shown(logger => logger.error({ err: 'torn' }, 'the store is away')),
      /work {3}the store is away: torn\n$/,
    )
  })

  it('escapes control characters that clients sent', () => {
    const line = shown(logger => logger.warn({ name: 'a\u001b[2Jb' }, 'odd\rname\u202e'))
    assert.match(line, /odd\\u000dname\\u202e {2}name="a\\u001b\[2Jb"\n$/)
  })

  it('has colours only on request, and leaves text that is not JSON unchanged', () => {
    const esc = String.fromCharCode(27)
    assert.ok(shown(logger => logger.info('x'), true).includes(`${esc}[32minfo`))
    assert.ok(!shown(logger => logger.info('x')).includes(esc))
    assert.equal(formatTerminalLine('no JSON\n', { inColour: false }), 'no JSON\n')
  })
})
