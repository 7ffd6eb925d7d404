// Formats a log line for a person at a terminal: time of day, level, process, message, then the other fields. Fields are
// the same as in the JSON line, which other readers get.

import { styleText } from 'node:util'

/** Fields that are shown at the front, without their name. */
const leading = new Set(['level', 'time', 'process', 'msg', 'err'])

const colours = { trace: 'gray', debug: 'gray', info: 'green', warn: 'yellow', error: 'red' } as const

/**
 * `10:15:32.123 warn  serve  message  key=value`; the frames of an error follow, a line each.
 * @param json a line of the logger. Text that is not JSON is returned unchanged.
 * @param options.inColour whether escape sequences may be used.
 */
export function terminalLine(json: string, { inColour }: { inColour: boolean }): string {
  let line: Record<string, unknown>
  try {
    line = JSON.parse(json) as Record<string, unknown>
  } catch {
    return json // such as a line that Node itself prints
  }
  const paint = (colour: Parameters<typeof styleText>[0], text: string) =>
    inColour ? styleText(colour, text, { validateStream: false }) : text
  const level = String(line.level)
  const thrown = typeof line.err === 'object' && line.err !== null ? line.err : { message: line.err }
  const { message, stack, ...ofError } = thrown as { message?: unknown; stack?: string }
  const text = [line.msg, message].filter(part => part !== undefined && part !== '').join(': ')
  const fields = Object.entries({ ...line, ...ofError })
    .filter(([name]) => !leading.has(name))
    .map(([name, value]) => paint('gray', `${name}=${inOneLine(value)}`))
  const head = [
    paint('gray', localTime(String(line.time))),
    paint(colours[level as keyof typeof colours] ?? 'white', level.padEnd(5)),
    paint('gray', String(line.process).padEnd(5)),
    withoutControls(text),
  ]
  const frames = stack === undefined || stack === '' ? [] : stack.split('\n').map(withoutControls)
  return [[...head, ...fields].join('  '), ...frames.map(frame => paint('gray', frame)), ''].join('\n')
}

function localTime(iso: string): string {
  const at = new Date(iso)
  if (Number.isNaN(at.getTime())) return withoutControls(iso)
  const padded = [at.getHours(), at.getMinutes(), at.getSeconds()].map(part => String(part).padStart(2, '0'))
  return `${padded.join(':')}.${String(at.getMilliseconds()).padStart(3, '0')}`
}

/** Words and numbers unchanged; everything else as JSON, so that its end is visible. */
function inOneLine(value: unknown): string {
  const isWord = typeof value === 'string' && /^[\w./:@+-]+$/.test(value)
  return isWord ? value : withoutControls(JSON.stringify(value) ?? String(value))
}

/** Text from clients must not move the cursor or colour the screen. */
function withoutControls(text: string): string {
  return text.replaceAll(/\p{Cc}|[\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu, control => {
    return `\\u${control.codePointAt(0)!.toString(16).padStart(4, '0')}`
  })
}
