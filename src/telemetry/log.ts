// The one logger: a line per happening on stdout, JSON for machines, and on a terminal for eyes (`terminal-line.ts`). No
// request body and no secret ever gets into a line.
// `error` is for what a person should fix now; a client's bad request is not that.

import { type DestinationStream, type Logger, type LoggerOptions, pino, stdSerializers } from 'pino'
import { terminalLine } from './terminal-line.ts'

export type { Logger }

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof logLevels)[number]

/** @param destination where the lines go; stdout when absent. */
export function createLogger(of: { level: LogLevel; process: string }, destination?: DestinationStream): Logger {
  const options: LoggerOptions = {
    level: of.level,
    base: { process: of.process },
    timestamp: pino.stdTimeFunctions.isoTime,
    // By its name: a number means something to pino alone.
    formatters: { level: name => ({ level: name }) },
    serializers: { err: errorWithMessageOnce },
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
 * What pino shows of an error, with each message once and the frames of where it began. By itself pino adds the messages of
 * the causes to one that has them already, and repeats all of them at the heads of as many stacks.
 */
function errorWithMessageOnce(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const chain = chainOf(error)
  let message = error.message
  for (const cause of chain.slice(1)) {
    const text = cause.message || (cause as { code?: string }).code || cause.name
    if (!message.includes(text)) message += `: ${text}`
  }
  return { ...stdSerializers.err(error), message, stack: framesOf(chain.at(-1)!) }
}

const causesMax = 10

function chainOf(error: Error): readonly Error[] {
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
