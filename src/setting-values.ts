// Parses the text of a setting into its value, or undefined if it is invalid. `config.ts` assigns parsers to settings.

import { resolve } from 'node:path'

export function parseText(text: string): string | undefined {
  return text === '' ? undefined : text
}

export function parseSwitch(text: string): boolean | undefined {
  return text === 'true' ? true : text === 'false' ? false : undefined
}

export function parsePath(text: string): string | undefined {
  return text === '' ? undefined : resolve(text)
}

export function parsePort(text: string): number | undefined {
  return wholeNumber(0, 65_535)(text)
}

export function wholeNumber(min: number, max: number): (text: string) => number | undefined {
  return text => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
    return value >= min && value <= max ? value : undefined
  }
}

const bytesPerUnit: Record<string, number> = { '': 1, B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 }

export function parseBytes(text: string): number | undefined {
  const match = /^(\d{1,15})\s*([KMGT]iB|B)?$/.exec(text)
  return match ? Number(match[1]) * bytesPerUnit[match[2] ?? '']! : undefined
}

export function bytesFrom(min: number): (text: string) => number | undefined {
  return text => {
    const bytes = parseBytes(text)
    return bytes !== undefined && bytes >= min ? bytes : undefined
  }
}

export function parseHttpUrl(text: string): string | undefined {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) ? text : undefined
}

export function parsePublicUrl(text: string): string | undefined {
  if (parseHttpUrl(text) === undefined) return undefined
  const { username, password, search, hash, href } = new URL(text)
  return [username, password, search, hash].every(part => part === '') ? href.replace(/\/+$/, '') : undefined
}

export function parsePostgresUrl(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined
  const { protocol, username, password, hostname, pathname } = new URL(text)
  return /^postgres(ql)?:$/.test(protocol) && [username, password, hostname, pathname].every(isDecodable)
    ? text
    : undefined
}

export function parseSchema(text: string): string | undefined {
  return /^(?!pg_)[a-z_][a-z0-9_]{0,62}$/.test(text) ? text : undefined
}

/** Like in libpq, a literal `%` is written `%25`. */
function isDecodable(part: string): boolean {
  try {
    decodeURIComponent(part)
    return true
  } catch {
    return false // decoding throws for exactly what this check looks for
  }
}

export function parseProjectKey(text: string): string | undefined {
  return /^[\x21-\x7e]{1,64}$/.test(text) && !/^ph[xs]_/.test(text) ? text : undefined
}

export function parsePersonalKey(text: string): string | undefined {
  return /^phx_[\x21-\x7e]{20,200}$/.test(text) ? text : undefined
}

export function parseEventsPassword(text: string): string | undefined {
  return /^[\x21-\x7e]{16,200}$/.test(text) ? text : undefined
}

export function parseEncryptionKeys(text: string): readonly string[] | undefined {
  if (text === '') return []
  const keys = text.split(',').map(key => key.trim().toLowerCase())
  return keys.every(key => /^[0-9a-f]{64}$/.test(key)) ? keys : undefined
}

export function parseProxies(text: string): readonly string[] | undefined {
  if (text === '' || text === 'none') return []
  const entries = text.split(',').map(entry => entry.trim())
  return entries.every(entry => /^(loopback|private|[0-9a-fA-F.:]+(\/\d{1,3})?)$/.test(entry)) ? entries : undefined
}

export function oneOf<const T extends string>(values: readonly T[]): (text: string) => T | undefined {
  return text => values.find(value => value === text)
}

export function orNull<T>(parse: (text: string) => T | undefined): (text: string) => T | null | undefined {
  return text => (text === '' ? null : parse(text))
}
