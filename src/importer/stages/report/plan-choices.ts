// The options of a plan that change what the import does, in words for whoever approves it: only those that are not as
// usual. Those that change what live events wrote come first and are marked. Source: docs/wire/import.md §2.7.

import { ownValue } from '#core/json.ts'
import type { ImportPlan } from '#importer/job/plan.ts'
import { Type } from '../../records/file-schema.ts'
import type { TargetAnswer } from './target-facts.ts'

export interface PlanChoice {
  /** As it is typed at `pennon import plan`. */
  readonly option: string
  /** What it does, as a whole sentence. */
  readonly text: string
  /** Whether publishing replaces values that live events wrote. */
  readonly replacesLiveValues: boolean
}

export const acceptOldOption = '--accept-old'

export const planChoicesSchema = Type.Array(
  Type.Object({ option: Type.String(), text: Type.String(), replacesLiveValues: Type.Boolean() }),
)

/** @param answer what the target said of itself, where it was asked. */
export function planChoices(plan: Pick<ImportPlan, 'config' | 'limits'>, answer?: TargetAnswer): readonly PlanChoice[] {
  return [
    ...liveChoices(plan).map(choice => ({ ...choice, replacesLiveValues: true })),
    ...[...serviceChoices(plan), ...sourceChoices(plan, answer), ...limitChoices(plan)].map(choice => ({
      ...choice,
      replacesLiveValues: false,
    })),
  ]
}

/** Each in one line, for a terminal. */
export function choiceLines(choices: readonly PlanChoice[]): readonly string[] {
  return choices.map(choice => `${choice.option}: ${choiceText(choice)}`)
}

export function choiceText({ text, replacesLiveValues }: PlanChoice): string {
  return replacesLiveValues ? `REPLACES LIVE VALUES. ${text}` : text
}

type Unmarked = Omit<PlanChoice, 'replacesLiveValues'>

/** Those of the choices that the plan has made. */
function pickChosen(
  ...choices: readonly (readonly [isChosen: boolean, option: string, text: string])[]
): readonly Unmarked[] {
  return choices.filter(([isChosen]) => isChosen).map(([, option, text]) => ({ option, text }))
}

function liveChoices({ limits: { joining = {} } }: Pick<ImportPlan, 'limits'>): readonly Unmarked[] {
  return pickChosen(
    [
      ownValue(joining, 'person_properties') === 'overwrite',
      '--person-properties overwrite',
      'Once it is published, values that the import sets ($set) stand in place of those that live events wrote.',
    ],
    [
      ownValue(joining, 'first_touch_backdate') === true,
      '--first-touch-backdate',
      'Once it is published, first values of the import ($set_once) stand in place of those of later live events.',
    ],
  )
}

function serviceChoices({ limits: { joining = {}, acceptsOld = false } }: Pick<ImportPlan, 'limits'>) {
  return pickChosen(
    [
      ownValue(joining, 'geoip') === true,
      '--geoip-from-record',
      'The service looks up the address that each event was recorded with, where the event says no place.',
    ],
    [
      ownValue(joining, 'experiments') === true,
      '--count-in-experiments',
      'Flag calls of the import count in the exposures of flags.',
    ],
    [acceptsOld, acceptOldOption, 'Events are taken that the project would drop for their age if they were live.'],
  )
}

function sourceChoices({ config }: Pick<ImportPlan, 'config'>, answer: TargetAnswer | undefined): readonly Unmarked[] {
  return [
    ...personDataChoice(ownValue(config, 'strip_person_updates'), answer),
    ...pickChosen(
      [
        ownValue(config, 'keep_identical') === true,
        '--keep-identical',
        'Lines that are the same and have no id are events of their own.',
      ],
      [
        ownValue(config, 'promote_groups') === true,
        '--promote-groups',
        'The property groups of an event says its groups, as $groups does.',
      ],
      [
        ownValue(config, 'allow_dangerous_merge') === true,
        '--allow-dangerous-merge',
        'Known users become one person where the source says that they are one, also persons that the project has already.',
      ],
    ),
  ]
}

/** To keep them is usual for a project without events, and planned for it without an option. */
function personDataChoice(isStripped: unknown, answer: TargetAnswer | undefined): readonly Unmarked[] {
  const isEmpty = answer !== undefined && !('notAsked' in answer) && !answer.hasEvents
  const what = 'What events say of their persons ($set, $set_once, $unset)'
  return pickChosen(
    [isStripped === true, '--strip-person-data', `${what} is left out.`],
    [isStripped === false && !isEmpty, '--keep-person-data', `${what} is kept.`],
  )
}

function limitChoices({ limits }: Pick<ImportPlan, 'limits'>): readonly Unmarked[] {
  const { holdLiveWindow, retentionDays, allowsDamagedFiles = false } = limits
  return pickChosen(
    [holdLiveWindow, '--hold-live-window', 'Events of the last 48 hours are rejected.'],
    [
      retentionDays !== null,
      `--retention-days ${retentionDays}`,
      `Events that are older than ${retentionDays?.toLocaleString('en')} days are rejected.`,
    ],
    [
      allowsDamagedFiles,
      '--allow-damaged-files',
      'Files that are cut off or damaged are imported as far as they can be read.',
    ],
  )
}
