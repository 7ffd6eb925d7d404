// Runs commands that call an instance: finds the key and the address in options and settings, and prints each error as one
// line on stderr.

import type { Config } from '#config.ts'
import { toPrintable } from '#core/printable.ts'
import { readConfigOrRefuse, refuse } from '../refuse.ts'
import { exitAfterOutput } from './exit-after-output.ts'
import { describePortMismatch, resolveInstanceAddress } from './instance-address.ts'
import { ClientError, PrivateApi } from './private-api.ts'

export interface ClientOptions {
  readonly host?: string
  readonly project: string
  readonly json?: boolean
}

/**
 * Runs a command with the private API of the instance that the options and settings name. Exits with code 2 if it cannot
 * start or continue, with 1 if it failed during its work, and with 0 if its output is no longer read.
 * @param scope the scope that the key needs, for the message if there is no key.
 * @param optionOfField maps a field, as named in errors, to the option whose value is sent in that field.
 */
export async function runClient(
  options: ClientOptions,
  scope: string,
  command: (api: PrivateApi) => Promise<void>,
  optionOfField: Readonly<Record<string, string>> = {},
): Promise<void> {
  const config = readConfigOrRefuse()
  const instance = resolveInstanceAddress(options.host, config)
  if (!instance.ok) refuse(instance.error)
  warnOfOtherPort(options.host, config)
  const { personalKey } = config
  if (personalKey === null)
    refuse(
      `Set PENNON_PERSONAL_KEY to a personal API key with the scope ${scope}. To create one, run pennon new-key where the instance runs.`,
    )
  exitAfterOutput()
  try {
    await command(new PrivateApi({ instance: instance.value, personalKey, project: options.project }))
  } catch (error) {
    if (!(error instanceof ClientError)) throw error
    const option = error.attr === null ? undefined : optionOfField[error.attr]
    const message = option === undefined ? error.message : `${option}: ${error.detail}`
    process.stderr.write(`pennon: ${toPrintable(message)}\n`)
    process.exit(error.exitCode)
  }
}

/** @param given the value of `--host`. */
export function warnOfOtherPort(given: string | undefined, config: Config): void {
  const note = describePortMismatch(given, process.env.PORT, config)
  if (note !== null) process.stderr.write(`pennon: ${toPrintable(note)}\n`)
}
