// Describes the options of a plan that change what the import does, for the person who approves it. Only options that differ
// from the default are listed; those that replace values of live events come first and are marked.
// Source: docs/wire/import.md §2.7.

import { ownValue } from '#core/json.ts'
import type { ImportPlan } from '#importer/job/plan.ts'
import { Type } from '../../records/file-schema.ts'
import type { TargetAnswer } from './target-facts.ts'

export interface PlanChoice {
  /** As passed to `pennon import plan`. */
  readonly option: string
  /** A sentence about its effect. */
  readonly text: string
  /** Whether publishing replaces values that live events wrote. */
  readonly replacesLiveValues: boolean
}

export const acceptOldOption = '--accept-old'

export const planChoicesSchema = Type.Array(
  Type.Object({ option: Type.String(), text: Type.String(), replacesLiveValues: Type.Boolean() }),
)

/** @param answer of the target about itself, if it was asked. */
export function listPlanChoices(
  plan: Pick<ImportPlan, 'config' | 'limits'>,
  answer?: TargetAnswer,
): readonly PlanChoice[] {
  return [
    ...listLiveChoices(plan).map(choice => ({ ...choice, replacesLiveValues: true })),
    ...[...listServiceChoices(plan), ...sourceChoices(plan, answer), ...listLimitChoices(plan)].map(choice => ({
      ...choice,
      replacesLiveValues: false,
    })),
  ]
}

/** One line per choice, for a terminal. */
export function formatChoices(choices: readonly PlanChoice[]): readonly string[] {
  return choices.map(choice => `${choice.option}: ${formatChoice(choice)}`)
}

export function formatChoice({ text, replacesLiveValues }: PlanChoice): string {
  return replacesLiveValues ? `REPLACES LIVE VALUES. ${text}` : text
}

type Unmarked = Omit<PlanChoice, 'replacesLiveValues'>

function pickChosen(
  ...choices: readonly (readonly [isChosen: boolean, option: string, text: string])[]
): readonly Unmarked[] {
  return choices.filter(([isChosen]) => isChosen).map(([, option, text]) => ({ option, text }))
}

function listLiveChoices({ limits: { joining = {} } }: Pick<ImportPlan, 'limits'>): readonly Unmarked[] {
  return pickChosen(
    [
      ownValue(joining, 'person_properties') === 'overwrite',
      '--person-properties overwrite',
      'Once the import is published, the values that it sets ($set) replace those of live events.',
    ],
    [
      ownValue(joining, 'first_touch_backdate') === true,
      '--first-touch-backdate',
      'Once the import is published, its first values ($set_once) replace those of later live events.',
    ],
  )
}

function listServiceChoices({ limits: { joining = {}, acceptsOld = false } }: Pick<ImportPlan, 'limits'>) {
  return pickChosen(
    [
      ownValue(joining, 'geoip') === true,
      '--geoip-from-record',
      'The service looks up the location of the IP address of each event that has no location.',
    ],
    [
      ownValue(joining, 'experiments') === true,
      '--count-in-experiments',
      'Flag calls of the import count as exposures of their flags.',
    ],
    [acceptsOld, acceptOldOption, 'The project accepts events so old that it would drop them if they were live.'],
  )
}

function sourceChoices({ config }: Pick<ImportPlan, 'config'>, answer: TargetAnswer | undefined): readonly Unmarked[] {
  return [
    ...listPersonDataChoice(ownValue(config, 'strip_person_updates'), answer),
    ...pickChosen(
      [
        ownValue(config, 'keep_identical') === true,
        '--keep-identical',
        'Identical lines without an id are separate events.',
      ],
      [
        ownValue(config, 'promote_groups') === true,
        '--promote-groups',
        'The property groups of an event is read as $groups.',
      ],
      [
        ownValue(config, 'allow_dangerous_merge') === true,
        '--allow-dangerous-merge',
        'Identified users are merged into one person if the source says so, including persons that already exist in the project.',
      ],
    ),
  ]
}

/** Keeping person data is the default for a project without events, so it is not listed for such a project. */
function listPersonDataChoice(isStripped: unknown, answer: TargetAnswer | undefined): readonly Unmarked[] {
  const isEmpty = answer !== undefined && !('notAsked' in answer) && !answer.hasEvents
  const what = 'Person data of events ($set, $set_once, $unset)'
  return pickChosen(
    [isStripped === true, '--strip-person-data', `${what} is left out.`],
    [isStripped === false && !isEmpty, '--keep-person-data', `${what} is kept.`],
  )
}

function listLimitChoices({ limits }: Pick<ImportPlan, 'limits'>): readonly Unmarked[] {
  const { holdLiveWindow, retentionDays, allowsDamagedFiles = false } = limits
  return pickChosen(
    [holdLiveWindow, '--hold-live-window', 'Events of the last 48 hours are rejected.'],
    [
      retentionDays !== null,
      `--retention-days ${retentionDays}`,
      `Events older than ${retentionDays?.toLocaleString('en')} days are rejected.`,
    ],
    [
      allowsDamagedFiles,
      '--allow-damaged-files',
      'Truncated or damaged files are imported as far as they can be read.',
    ],
  )
}
