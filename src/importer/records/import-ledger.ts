// What an import remembers between records: the user that each device is linked to, and the last properties of groups and
// persons. `convert` keeps it in memory, a job in its folder. Source: docs/wire/import.md §0, I1 to I4, §1.1.

import type { JsonObject } from '#core/json.ts'

export interface ImportLedger {
  /**
   * Links a device to its first user.
   * @returns `linked` for a new link, `known` for the same pair again, `shared` when the device has another user.
   */
  link(deviceId: string, userId: string): 'linked' | 'known' | 'shared'
  /**
   * Stores the properties of a group.
   * @param properties null for a record that only names the group; the stored properties are then kept.
   * @returns the properties stored before; null for a new group.
   */
  group(type: string, key: string, properties: JsonObject | null): JsonObject | null
  /** Stores the properties of a person. @returns the properties stored before; null for a new person. */
  person(distinctId: string, properties: JsonObject): JsonObject | null
}

export function createInMemoryLedger(): ImportLedger {
  const userByDevice = new Map<string, string>()
  const groups = new Map<string, JsonObject>()
  const persons = new Map<string, JsonObject>()
  return {
    link: (deviceId, userId) => {
      const known = userByDevice.get(deviceId)
      if (known === undefined) userByDevice.set(deviceId, userId)
      return known === undefined ? 'linked' : known === userId ? 'known' : 'shared'
    },
    group: (type, key, properties) => {
      const id = JSON.stringify([type, key])
      return replaceKnown(groups, id, properties ?? groups.get(id) ?? {})
    },
    person: (distinctId, properties) => replaceKnown(persons, distinctId, properties),
  }
}

function replaceKnown(known: Map<string, JsonObject>, key: string, properties: JsonObject): JsonObject | null {
  const before = known.get(key) ?? null
  known.set(key, properties)
  return before
}
