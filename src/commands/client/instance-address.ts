// Finds the private API of an instance: at `--host` or PENNON, otherwise where the current configuration would serve it.

import type { Command } from 'commander'
import type { Config } from '#config.ts'
import { err, ok, type Result } from '#core/result.ts'

export type AddressConfig = Pick<Config, 'instance' | 'host' | 'port' | 'adminPort'>

/** Adds the options that choose the instance and the project that a command calls. */
export function addAddressOptions(command: Command): Command {
  return command
    .option(
      '--host <url>',
      'URL of the private API (default: PENNON, otherwise from HOST and PENNON_ADMIN_PORT or PORT)',
    )
    .option('--project <id>', 'project id', '@current')
}

/** Collects the values of an option that may be repeated, for `Command.option`. */
export function collectOption(value: string, before: readonly string[] = []): string[] {
  return [...before, value]
}

/**
 * @param given the value of `--host`: an address such as `https://pennon.example`, or, as its name suggests, a host with or
 *   without a port: `pennon.example`, `127.0.0.1:8000`.
 * @returns the address without a final slash, or a one-line message for people.
 */
export function resolveInstanceAddress(given: string | undefined, config: AddressConfig): Result<string, string> {
  const text = given ?? config.instance ?? buildConfiguredAddress(config)
  const whole = text.includes('://') ? text : `${isLoopback(text) ? 'http' : 'https'}://${text}`
  const url = URL.parse(whole)
  if (!/^https?:$/.test(url?.protocol ?? '') || url!.search !== '' || url!.hash !== '')
    return err(`${given === undefined ? 'PENNON' : '--host'} must be a URL such as https://pennon.example, not ${text}`)
  return ok(whole.replace(/\/+$/, ''))
}

/**
 * Detects that PENNON, often exported once for one instance, and PORT, set for another on this machine, disagree.
 * @param port the text of the setting PORT; undefined if it is not set.
 * @returns a line for people if PENNON and PORT mean different instances; null otherwise.
 */
export function describePortMismatch(
  given: string | undefined,
  port: string | undefined,
  config: AddressConfig,
): string | null {
  const { instance } = config
  if (given !== undefined || instance === null || !port) return null
  const url = URL.parse(instance.includes('://') ? instance : `http://${instance}`)
  if (url === null || !isLoopback(url.host)) return null
  const asked = Number(url.port || 80)
  if ([config.port, config.adminPort].includes(asked)) return null
  return `using ${instance} from PENNON, not PORT=${port}; for that instance: --host ${buildConfiguredAddress(config)}`
}

function isLoopback(hostAndPort: string): boolean {
  return /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?(\/|$)/.test(hostAndPort)
}

function buildConfiguredAddress({ host, port, adminPort }: AddressConfig): string {
  const reached = ['0.0.0.0', '::'].includes(host) ? '127.0.0.1' : host
  return `http://${reached.includes(':') ? `[${reached}]` : reached}:${adminPort ?? port}`
}
