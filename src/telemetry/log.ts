// The only logger: writes a line per event to stdout, as JSON, or on a terminal as readable text (`terminal-line.ts`). No
// line contains a request body or a secret. `error` is for problems that an operator should fix now, which a client's bad
// request is not.

import { type DestinationStream, type Logger, type LoggerOptions, pino, stdSerializers } from 'pino'
import { terminalLine } from './terminal-line.ts'

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
  const target = destination ?? (process.stdout.isTTY ? terminal() : undefined)
  return target === undefined ? pino(options) : pino(options, target)
}

function terminal(): DestinationStream {
  const inColour = !process.env.NO_COLOR && process.env.TERM !== 'dumb'
  return { write: line => void process.stdout.write(terminalLine(line, { inColour })) }
}

/**
 * Pino's form of an error, but with each message once and only the root cause's stack frames. By default pino appends
 * the causes' messages even to a message that already contains them, and repeats them at the head of each stack.
 */
function removeRepeatedMessages(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const chain = listCauses(error)
  let message = error.message
  for (const cause of chain.slice(1)) {
    const text = cause.message || (cause as { code?: string }).code || cause.name
    if (!message.includes(text)) message += `: ${text}`
  }
  return { ...stdSerializers.err(error), message, stack: framesOf(chain.at(-1)!) }
}

const causesMax = 10

function listCauses(error: Error): readonly Error[] {
  const chain = [error]
  for (let { cause } = error; cause instanceof Error && chain.length < causesMax; { cause } = cause) chain.push(cause)
  return chain
}

function framesOf({ stack = '' }: Error): string {
  const start = stack.search(/^ {4}at /m)
  return start === -1 ? '' : stack.slice(start)
}

export function silentLogger(): Logger {
  return pino({ level: 'silent' })
}
