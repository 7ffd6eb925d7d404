// Where the private API of an instance is: what a command is told, or where this configuration would serve it.

import type { Config } from '#config.ts'
import { err, ok, type Result } from '#core/result.ts'

/**
 * @param given an address such as `https://pennon.example`. For `--host`, which sounds like a name, a name or an address
 *   with a port will do: `pennon.example`, `127.0.0.1:8000`.
 * @returns the address without a final slash, or a one-line message for people.
 */
export function instanceAddress(
  given: string | undefined,
  config: Pick<Config, 'host' | 'port' | 'adminPort'>,
  option: '--host' | '--url',
): Result<string, string> {
  const text = given ?? ownAddress(config)
  const isWhole = option === '--url' || text.includes('://')
  const whole = isWhole ? text : `${isLoopback(text) ? 'http' : 'https'}://${text}`
  const url = URL.parse(whole)
  if (!/^https?:$/.test(url?.protocol ?? '') || url!.search !== '' || url!.hash !== '')
    return err(`${option} is an address such as https://pennon.example, not ${text}`)
  return ok(whole.replace(/\/+$/, ''))
}

function isLoopback(hostAndPort: string): boolean {
  return /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?(\/|$)/.test(hostAndPort)
}

function ownAddress({ host, port, adminPort }: Pick<Config, 'host' | 'port' | 'adminPort'>): string {
  const reached = ['0.0.0.0', '::'].includes(host) ? '127.0.0.1' : host
  return `http://${reached.includes(':') ? `[${reached}]` : reached}:${adminPort ?? port}`
}
