// Which zone times without one are read in: what the configuration says counts more than what its mapping says.

import { isJsonObject, type JsonObject, ownValue } from '#core/json.ts'

export function describeZone(config: JsonObject): string {
  const { said, mapped } = zonesIn(config)
  if (said === null) return mapped === null ? 'none was said' : `${mapped}, by the mapping`
  return mapped === null || mapped === said ? said : `${said}, which counts instead of ${mapped} in the mapping`
}

/** @returns a sentence where mapping and configuration differ; null where nobody has to wonder. */
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
