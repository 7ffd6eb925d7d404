// The options of a plan that change what the import does, for the person who approves it. Only options that differ from the
// default are listed; those that replace values of live events come first and are marked.
// Source: docs/wire/import.md §2.7.

import { formatCount } from '#core/format-count.ts'
import { getOwnValue, isJsonObject, type JsonObject } from '#core/json.ts'
import type { ImportPlan } from '#importer/job/plan.ts'
import type { PlanChoice, TargetAnswer } from './import-report.ts'

const personData = 'Person data of events ($set, $set_once, $unset)'

/** @param answer the target's answer about itself, if it was asked. */
export function listPlanChoices(
  { config, limits }: Pick<ImportPlan, 'config' | 'limits'>,
  answer?: TargetAnswer,
): readonly PlanChoice[] {
  const { joining = {}, acceptsOld = false, holdLiveWindow, retentionDays, allowsDamagedFiles = false } = limits
  const isJoining = (key: string, value: string | boolean = true) => getOwnValue(joining, key) === value
  const isSet = (key: string, value = true) => getOwnValue(config, key) === value
  // Keeping person data is the default for a project without events.
  const isEmpty = answer !== undefined && !('notAsked' in answer) && !answer.hasEvents
  const all: readonly (readonly [isChosen: boolean, option: string, text: string, replacesLiveValues?: true])[] = [
    [
      isJoining('person_properties', 'overwrite'),
      '--person-properties overwrite',
      'Once the import is published, the values that it sets ($set) replace those of live events.',
      true,
    ],
    [
      isJoining('first_touch_backdate'),
      '--first-touch-backdate',
      'Once the import is published, its first values ($set_once) replace those of later live events.',
      true,
    ],
    [
      isJoining('geoip'),
      '--geoip-from-record',
      'The service looks up the location of the IP address of each event that has no location.',
    ],
    [isJoining('experiments'), '--count-in-experiments', 'Flag calls of the import count as exposures of their flags.'],
    [acceptsOld, '--accept-old', 'The project accepts events so old that it would drop them if they were live.'],
    [isSet('strip_person_updates'), '--strip-person-data', `${personData} is left out.`],
    [isSet('strip_person_updates', false) && !isEmpty, '--keep-person-data', `${personData} is kept.`],
    [isSet('keep_identical'), '--keep-identical', 'Identical lines without an id are separate events.'],
    [isSet('promote_groups'), '--promote-groups', 'The property groups of an event is read as $groups.'],
    [
      isSet('allow_dangerous_merge'),
      '--allow-dangerous-merge',
      'Identified users are merged into one person if the source says so, including persons that already exist in the project.',
    ],
    [holdLiveWindow, '--hold-live-window', 'Events of the last 48 hours are rejected.'],
    [
      retentionDays !== null,
      `--retention-days ${retentionDays}`,
      `Events older than ${formatCount(retentionDays ?? 0, 'day')} are rejected.`,
    ],
    [
      allowsDamagedFiles,
      '--allow-damaged-files',
      'Truncated or damaged files are imported as far as they can be read.',
    ],
  ]
  return all
    .filter(([isChosen]) => isChosen)
    .map(([, option, text, replacesLiveValues = false]) => ({ option, text, replacesLiveValues }))
}

/** One line per choice, for a terminal. */
export function formatChoices(choices: readonly PlanChoice[]): readonly string[] {
  return choices.map(choice => `${choice.option}: ${formatChoice(choice)}`)
}

export function formatChoice({ text, replacesLiveValues }: PlanChoice): string {
  return replacesLiveValues ? `REPLACES LIVE VALUES. ${text}` : text
}

/** The zone used for times without a zone. The configuration takes precedence over its mapping. */
export function describeZone(config: JsonObject): string {
  const mapping = getOwnValue(config, 'mapping')
  const [own, mapped] = [readZone(config), isJsonObject(mapping) ? readZone(mapping as JsonObject) : null]
  if (own === null) return mapped === null ? 'none given' : `${mapped}, by the mapping`
  return mapped === null || mapped === own ? own : `${own}, ${overriding} ${mapped} in the mapping`
}

const overriding = 'which overrides'

/** @returns a sentence if mapping and configuration differ; otherwise null. */
export function describeDifferingZones(config: JsonObject): string | null {
  const zone = describeZone(config)
  return zone.includes(overriding) ? `Times without a zone are read as ${zone}.` : null
}

function readZone(value: JsonObject): string | null {
  const zone = getOwnValue(value, 'source_timezone')
  return typeof zone === 'string' ? zone : null
}
