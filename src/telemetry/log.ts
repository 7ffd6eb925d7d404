// The only logger: writes a line per event to stdout, as JSON, or on a terminal as readable text. No
// line contains a request body or a secret. `error` is for problems that an operator should fix now, which a client's bad
// request is not.

import { styleText } from 'node:util'
import { type DestinationStream, type Logger, type LoggerOptions, pino, stdSerializers } from 'pino'

export type { Logger }

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof logLevels)[number]

/** @param destination where the lines go; stdout when absent. */
export function createLogger(line: { level: LogLevel; process: string }, destination?: DestinationStream): Logger {
  const options: LoggerOptions = {
    level: line.level,
    base: { process: line.process },
    timestamp: pino.stdTimeFunctions.isoTime,
    // The level by name: its number has a meaning only for pino.
    formatters: { level: name => ({ level: name }) },
    serializers: { err: removeRepeatedMessages },
    redact: {
      paths: ['authorization', 'headers.authorization', 'api_key', 'token', '*.authorization', '*.api_key'],
      censor: '[redacted]',
    },
  }
  return pino(options, destination ?? (process.stdout.isTTY ? createTerminalStream() : createStdoutStream()))
}

/** Writes in a thread, so that a reader who stops reading does not block the process. */
function createStdoutStream(): DestinationStream {
  // With a smaller `minLength`, flushing does not wait for the line that is being written.
  return pino.destination({ dest: 1, sync: false, minLength: 1 })
}

/** A reader that takes no more lines must not keep a process from exiting. */
const lastLinesMs = 2_000

/**
 * Exits once all lines are written. Without the wait, the last line could come before the line that the thread is writing,
 * or that line could be lost.
 */
export function exitAfterLogging(logger: Logger, exitCode: number): Promise<never> {
  setTimeout(() => process.exit(exitCode), lastLinesMs)
  return new Promise(() => logger.flush(() => process.exit(exitCode)))
}

function createTerminalStream(): DestinationStream {
  const inColour = !process.env.NO_COLOR && process.env.TERM !== 'dumb'
  return { write: line => void process.stdout.write(formatTerminalLine(line, { inColour })) }
}

/**
 * Formats an error like pino, but with each message once and only the root cause's stack frames. By default, pino appends
 * the messages of causes even to a message that already contains them, and repeats them at the start of each stack.
 */
function removeRepeatedMessages(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const chain = listCauses(error)
  let message = error.message
  for (const cause of chain.slice(1)) {
    const text = cause.message || (cause as { code?: string }).code || cause.name
    if (!message.includes(text)) message += `: ${text}`
  }
  return { ...stdSerializers.err(error), message, stack: extractFrames(chain.at(-1)!) }
}

const causesMax = 10

function listCauses(error: Error): readonly Error[] {
  const chain = [error]
  for (let { cause } = error; cause instanceof Error && chain.length < causesMax; { cause } = cause) chain.push(cause)
  return chain
}

function extractFrames({ stack = '' }: Error): string {
  const start = stack.search(/^ {4}at /m)
  return start === -1 ? '' : stack.slice(start)
}

export function createSilentLogger(): Logger {
  return pino({ level: 'silent' })
}

/** Fields that are shown first, without their name. */
const leading = new Set(['level', 'time', 'process', 'msg', 'err'])

const colours = { trace: 'gray', debug: 'gray', info: 'green', warn: 'yellow', error: 'red' } as const

/**
 * Formats a log line for a person at a terminal: `10:15:32.123 warn  serve  message  key=value`; the frames of an error follow, a line each.
 * @param json a line of the logger. Text that is not JSON is returned unchanged.
 * @param options.inColour whether escape sequences may be used.
 */
export function formatTerminalLine(json: string, { inColour }: { inColour: boolean }): string {
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
    .map(([name, value]) => paint('gray', `${name}=${formatOneLine(value)}`))
  const head = [
    paint('gray', formatLocalTime(String(line.time))),
    paint(colours[level as keyof typeof colours] ?? 'white', level.padEnd(5)),
    paint('gray', String(line.process).padEnd(5)),
    escapeControls(text),
  ]
  const frames = stack === undefined || stack === '' ? [] : stack.split('\n').map(escapeControls)
  return [[...head, ...fields].join('  '), ...frames.map(frame => paint('gray', frame)), ''].join('\n')
}

function formatLocalTime(iso: string): string {
  const at = new Date(iso)
  if (Number.isNaN(at.getTime())) return escapeControls(iso)
  const padded = [at.getHours(), at.getMinutes(), at.getSeconds()].map(part => String(part).padStart(2, '0'))
  return `${padded.join(':')}.${String(at.getMilliseconds()).padStart(3, '0')}`
}

/** Words and numbers unchanged; everything else as JSON, so that its end is visible. */
function formatOneLine(value: unknown): string {
  const isWord = typeof value === 'string' && /^[\w./:@+-]+$/.test(value)
  return isWord ? value : escapeControls(JSON.stringify(value) ?? String(value))
}

/** Text from clients must not move the cursor or colour the screen. */
function escapeControls(text: string): string {
  return text.replaceAll(/\p{Cc}|[\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu, control => {
    return `\\u${control.codePointAt(0)!.toString(16).padStart(4, '0')}`
  })
}
