// The zone used for times without one. The configuration takes precedence over its mapping.

import { isJsonObject, type JsonObject, ownValue } from '#core/json.ts'

export function describeZone(config: JsonObject): string {
  const { said, mapped } = readZones(config)
  if (said === null) return mapped === null ? 'none given' : `${mapped}, by the mapping`
  return mapped === null || mapped === said ? said : `${said}, which overrides ${mapped} in the mapping`
}

/** @returns a sentence if mapping and configuration differ; otherwise null. */
export function describeDifferingZones(config: JsonObject): string | null {
  const { said, mapped } = readZones(config)
  if (said === null || mapped === null || said === mapped) return null
  return `Times without a zone are read as ${describeZone(config)}.`
}

function readZones(config: JsonObject): { readonly said: string | null; readonly mapped: string | null } {
  const mapping = ownValue(config, 'mapping')
  return { said: readZone(config), mapped: isJsonObject(mapping) ? readZone(mapping as JsonObject) : null }
}

function readZone(value: JsonObject): string | null {
  const zone = ownValue(value, 'source_timezone')
  return typeof zone === 'string' ? zone : null
}
