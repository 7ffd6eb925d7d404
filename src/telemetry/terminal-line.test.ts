import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createLogger, type Logger } from './log.ts'
import { terminalLine } from './terminal-line.ts'

/** The text of logged lines on a terminal. */
function shown(log: (logger: Logger) => void, inColour = false): string {
  let text = ''
  const write = (line: string) => {
    text += terminalLine(line, { inColour })
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
    assert.match(second!, /^ {4}at .*terminal-line\.test\.ts/)
    assert.match(
      shown(logger => logger.error({ err: 'torn' }, 'the store is away')),
      /work {3}the store is away: torn\n$/,
    )
  })

  it('escapes control characters that clients sent', () => {
    const line = shown(logger => logger.warn({ name: 'a\u001b[2Jb' }, 'odd\rname\u202e'))
    assert.match(line, /odd\\u000dname\\u202e {2}name="a\\u001b\[2Jb"\n$/)
  })

  it('has colours only on request, and leaves text that is no JSON unchanged', () => {
    const esc = String.fromCharCode(27)
    assert.ok(shown(logger => logger.info('x'), true).includes(`${esc}[32minfo`))
    assert.ok(!shown(logger => logger.info('x')).includes(esc))
    assert.equal(terminalLine('no JSON\n', { inColour: false }), 'no JSON\n')
  })
})
