// Declares a source, with what all sources share: unknown keys in the configuration are refused, and `event_names` renames
// events. For example, an export's "Page View" counts as a page view only under the name that the receiver knows. Source:
// docs/wire/import.md §1.0 (`event_names`).

import { ImportConfigError, type ImportSource, type RecordConverter, type SourceContext } from './import-source.ts'
import type { Conversion, ImportedEvent } from './imported-event.ts'
import { eventNameLengthMax, isLongerThanCharacters } from './record-fields.ts'
import { eventNamesKey, SourceConfig } from './source-config.ts'
import type { NameWatch } from './unseen-names.ts'

/**
 * Events whose properties link or describe persons. An event must not be renamed to one of these names, and these events
 * must not be renamed.
 */
const identityEvents = ['$identify', '$create_alias', '$merge_dangerously', '$groupidentify']

/**
 * @param summary a line for `--help`.
 * @param prepare reads all configuration keys that the source has. @throws ImportConfigError
 */
export function defineSource(
  name: string,
  summary: string,
  prepare: (config: SourceConfig, context: SourceContext) => RecordConverter,
): ImportSource {
  return {
    name,
    summary,
    prepare(settings, context) {
      const config = new SourceConfig(name, settings)
      const converter = prepare(config, context)
      config.end()
      const names = readEventNames(name, config)
      if (names.size === 0) return converter
      const watch = context.unseenNames?.watchEvents(names.keys())
      return {
        ...converter,
        // Renames events after the source's own mapping, without changing their uuids.
        convert: record => renameEvents(observeNames(converter.convert(record), watch), names),
      }
    },
  }
}

function observeNames(outcome: Conversion, watch: NameWatch | undefined): Conversion {
  if (watch?.isWaiting === true && 'events' in outcome) for (const { event } of outcome.events) watch.see(event)
  return outcome
}

function renameEvents(outcome: Conversion, names: ReadonlyMap<string, string>): Conversion {
  if (!('events' in outcome) || !outcome.events.some(({ event }) => names.has(event))) return outcome
  return { ...outcome, events: outcome.events.map(event => renameEvent(event, names)) }
}

function renameEvent(event: ImportedEvent, names: ReadonlyMap<string, string>): ImportedEvent {
  const name = names.get(event.event)
  return name === undefined ? event : { ...event, event: name, sourceName: event.sourceName ?? event.event }
}

/** @throws ImportConfigError */
function readEventNames(source: string, config: SourceConfig): ReadonlyMap<string, string> {
  const names = config.texts(eventNamesKey)
  for (const [from, to] of names)
    for (const name of [from, to]) {
      const problem = findNameProblem(name)
      if (problem !== null)
        throw new ImportConfigError(
          `${eventNamesKey} in the configuration of ${source} has ${JSON.stringify(from)}: ${JSON.stringify(to)}, and ${problem}`,
        )
    }
  return names
}

/** @returns why `event_names` cannot contain this name; null when it can. */
function findNameProblem(name: string): string | null {
  if (name.trim() === '') return 'a name may not be empty'
  if (isLongerThanCharacters(name, eventNameLengthMax)) return `a name has ${eventNameLengthMax} characters at most`
  return identityEvents.includes(name)
    ? `${name} cannot be renamed, nor can another event become one: it links or describes a person`
    : null
}

/** @returns the option that renames the event; null when `to` is an identity event, which no event can become. */
export function formatRenameOption(from: string, to: string): string | null {
  if (identityEvents.includes(to)) return null
  return `--config FILE, where FILE holds ${JSON.stringify({ [eventNamesKey]: { [from]: to } })}`
}
