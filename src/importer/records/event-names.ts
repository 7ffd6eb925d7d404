// Other names for events, which every source takes in its configuration: what an export calls "Page View" is only counted as
// a page view under the name that the receiver knows. Source: docs/wire/import.md §1.0 (`event_names`).

import type { JsonObject } from '#core/json.ts'
import { ImportConfigError, type ImportSource, type RecordConverter } from './import-source.ts'
import type { Conversion, ImportedEvent } from './imported-event.ts'
import { eventNameLengthMax, isLongerThan } from './record-fields.ts'
import { eventNamesKey, SourceConfig } from './source-config.ts'
import { EventNameWatch } from './unseen-names.ts'

/** They link or describe somebody by what they hold, which a name alone neither gives nor takes away. */
const identityEvents = ['$identify', '$create_alias', '$merge_dangerously', '$groupidentify']

/** The source with `event_names`: the new name by the one that its own mapping gives. Uuids stay as they are. */
export function withEventNames(source: ImportSource): ImportSource {
  const { name, summary } = source
  return {
    name,
    summary,
    prepare(config, context) {
      const converter = source.prepare(config, context)
      const names = eventNamesIn(name, config)
      if (names.size === 0) return converter
      if (context.unseenNames === undefined) return renaming(converter, names, null)
      const watch = new EventNameWatch(names.keys())
      context.unseenNames.add(watch)
      return renaming(converter, names, watch)
    },
  }
}

function renaming(
  converter: RecordConverter,
  names: ReadonlyMap<string, string>,
  watch: EventNameWatch | null,
): RecordConverter {
  const { factsOf, timeOf } = converter
  return {
    convert: record => renamed(seen(converter.convert(record), watch), names),
    ...(factsOf !== undefined && { factsOf: factsOf.bind(converter) }),
    ...(timeOf !== undefined && { timeOf: timeOf.bind(converter) }),
  }
}

function seen(outcome: Conversion, watch: EventNameWatch | null): Conversion {
  if (watch?.isWaiting === true && 'events' in outcome) for (const { event } of outcome.events) watch.see(event)
  return outcome
}

function renamed(outcome: Conversion, names: ReadonlyMap<string, string>): Conversion {
  if (!('events' in outcome) || !outcome.events.some(({ event }) => names.has(event))) return outcome
  return { ...outcome, events: outcome.events.map(event => withNewName(event, names)) }
}

function withNewName(event: ImportedEvent, names: ReadonlyMap<string, string>): ImportedEvent {
  const name = names.get(event.event)
  return name === undefined ? event : { ...event, event: name, sourceName: event.sourceName ?? event.event }
}

/** @throws ImportConfigError */
function eventNamesIn(source: string, config: JsonObject): ReadonlyMap<string, string> {
  const names = new SourceConfig(source, config).texts(eventNamesKey)
  for (const [from, to] of names)
    for (const name of [from, to]) {
      const problem = problemOf(name)
      if (problem !== null)
        throw new ImportConfigError(
          `${eventNamesKey} in the configuration of ${source} has ${JSON.stringify(from)}: ${JSON.stringify(to)}, and ${problem}`,
        )
    }
  return names
}

/** @returns why a text can be no name of an event there; null when it can. */
function problemOf(name: string): string | null {
  if (name.trim() === '') return 'a name may not be empty'
  if (isLongerThan(name, eventNameLengthMax)) return `a name has ${eventNameLengthMax} characters at most`
  return identityEvents.includes(name)
    ? `${name} cannot be renamed, nor can another event become one: it links or describes somebody`
    : null
}

/** @returns what somebody has to say to have an event sent under another name; null where a name is not enough. */
export function renamingAdvice(from: string, to: string): string | null {
  if (identityEvents.includes(to)) return null
  return `--config FILE, where FILE holds ${JSON.stringify({ [eventNamesKey]: { [from]: to } })}`
}
