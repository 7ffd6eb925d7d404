// The zone used for times without one. The configuration takes precedence over its mapping.

import { isJsonObject, type JsonObject, ownValue } from '#core/json.ts'

export function describeZone(config: JsonObject): string {
  const { said, mapped } = zonesIn(config)
  if (said === null) return mapped === null ? 'none given' : `${mapped}, by the mapping`
  return mapped === null || mapped === said ? said : `${said}, which overrides ${mapped} in the mapping`
}

/** @returns a sentence if mapping and configuration differ; otherwise null. */
export function differingZones(config: JsonObject): string | null {
  const { said, mapped } = zonesIn(config)
  if (said === null || mapped === null || said === mapped) return null
  return `Times without a zone are read as ${describeZone(config)}.`
}

function zonesIn(config: JsonObject): { readonly said: string | null; readonly mapped: string | null } {
  const mapping = ownValue(config, 'mapping')
  return { said: zoneIn(config), mapped: isJsonObject(mapping) ? zoneIn(mapping as JsonObject) : null }
}

function zoneIn(value: JsonObject): string | null {
  const zone = ownValue(value, 'source_timezone')
  return typeof zone === 'string' ? zone : null
}
