// What an import remembers between records: which device was linked to whom, what was last said of a group and of a
// person. `convert` keeps it in memory; a job keeps it in its folder. Source: docs/wire/import.md §0, I1 to I4, §1.1.

import type { JsonObject } from '#core/json.ts'

export interface ImportLedger {
  /**
   * Links a device to its first user.
   * @returns `linked` when it is news, `known` for the same pair again, `shared` when the device has another user.
   */
  link(deviceId: string, userId: string): 'linked' | 'known' | 'shared'
  /**
   * Keeps what is said of the group now.
   * @param properties null for a record that only names the group: what was said before stays.
   * @returns what was last said of it; null at first sight.
   */
  group(type: string, key: string, properties: JsonObject | null): JsonObject | null
  /** @returns what was last said of the person, or null; keeps what is said now. */
  person(distinctId: string, properties: JsonObject): JsonObject | null
}

/** An empty ledger that ends with the process. */
export function memoryLedger(): ImportLedger {
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
      return replaced(groups, id, properties ?? groups.get(id) ?? {})
    },
    person: (distinctId, properties) => replaced(persons, distinctId, properties),
  }
}

function replaced(known: Map<string, JsonObject>, key: string, properties: JsonObject): JsonObject | null {
  const before = known.get(key) ?? null
  known.set(key, properties)
  return before
}
