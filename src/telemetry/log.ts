// The one logger: a line of JSON per happening, on stdout. No request body and no secret ever gets into a line.
// `error` is for what a person should fix now; a client's bad request is not that.

import { type Logger, pino } from 'pino'

export type { Logger }

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof logLevels)[number]

export function createLogger(options: { level: LogLevel; process: string }): Logger {
  return pino({
    level: options.level,
    base: { process: options.process },
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: {
      paths: ['authorization', 'headers.authorization', 'api_key', 'token', '*.authorization', '*.api_key'],
      censor: '[redacted]',
    },
  })
}

export function silentLogger(): Logger {
  return pino({ level: 'silent' })
}
