// The text form of a cookieless event's visitor in the log.

import type { GeoipLocation } from '../geoip.ts'
import { getOwnValue, isJsonObject, type JsonObject, type JsonValue, parseJson, toCompactJson } from '../json.ts'
import type { CookielessVisitor, StatefulVisitor } from './captured-event.ts'

export function encodeVisitor({ stateful, location }: CookielessVisitor): string {
  return toCompactJson({
    ...(stateful === null
      ? {}
      : { hash: stateful.hash, day: stateful.day, ...(stateful.isSentinel ? { sentinel: true } : {}) }),
    ...(location === null ? {} : { location }),
  })
}

/** Undefined for text that is not a visitor. */
export function decodeVisitor(text: string): CookielessVisitor | undefined {
  let fields: JsonValue
  try {
    fields = parseJson(text)
  } catch {
    return undefined
  }
  if (!isJsonObject(fields)) return undefined
  const location = getOwnValue(fields, 'location')
  return {
    stateful: decodeStatefulVisitor(fields),
    location: isJsonObject(location) ? (location as GeoipLocation) : null,
  }
}

function decodeStatefulVisitor({ hash, day, sentinel }: JsonObject): StatefulVisitor | null {
  return typeof hash === 'string' && typeof day === 'string' ? { hash, day, isSentinel: sentinel === true } : null
}
