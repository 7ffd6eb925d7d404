// A flag as stored; `compile-flag.ts` compiles it for evaluation. `filters` stays JSON, because stored definitions may
// be older than our validation or have skipped it.

import { omitUndefined } from '#core/omit-undefined.ts'
import { diffJson } from '../../json-diff.ts'
import {
  authorField,
  booleanField,
  buildInitialFields,
  type ItemOf,
  instantField,
  integerField,
  nullable,
  objectField,
  textField,
  textsField,
} from '../../resource.ts'

/**
 * The fields that a flag's writer decides, with their values when it omits them or sends null. A create, an update, a copy
 * and a restore all take exactly these fields, so a new field is added here; `docs/how-to-add.md` lists the steps that the
 * compiler cannot check.
 */
const writableFields = {
  /** Part of the hash that decides rollouts and variants; case-sensitive. */
  key: textField('key'),
  name: textField('name', { initial: '' }),
  filters: objectField('filters', { initial: {} }),
  active: booleanField('active', { initial: true }),
  /** An archived flag is kept but not used: it is inactive and is left out of lists. */
  archived: booleanField('archived', { initial: false }),
  deleted: booleanField('deleted', { initial: false }),
  ensureExperienceContinuity: booleanField('ensure_experience_continuity', { initial: false }),
  /** With `device_id` the device id is hashed; with anything else, including null, the distinct id. */
  bucketingIdentifier: nullable(textField('bucketing_identifier')),
  evaluationRuntime: textField('evaluation_runtime', { initial: 'all' }),
  evaluationContexts: textsField('evaluation_contexts', { initial: [] }),
  hasEncryptedPayloads: booleanField('has_encrypted_payloads', { initial: false }),
  isRemoteConfiguration: booleanField('is_remote_configuration', { initial: false }),
  tags: textsField('tags', { initial: [] }),
}

/**
 * Declares the columns of a flag's row. The flag's JSON is not derived from this, unlike the JSON of other resources: see
 * `wire/management/flags/flags.ts`.
 */
export const flagResource = {
  table: 'feature_flag',
  required: [],
  fields: {
    /** Instance-wide, ascending from 1, never reused; other flags refer to it by this id. */
    id: integerField('id'),
    projectId: integerField('project_id'),
    ...writableFields,
    /** Every write raises the version: a front reads a flag again only if it holds another version. */
    version: integerField('version'),
    hasExperiment: booleanField('has_experiment'),
    createdAtMs: instantField('created_at'),
    updatedAtMs: instantField('updated_at'),
    /** When the flag's filters or its active state last changed: since then, the flag has decided the same way. */
    conditionsSinceMs: instantField('conditions_since'),
    /** Null when the flag was created without a key. */
    createdBy: nullable(authorField('created_by')),
  },
} as const

export type Flag = ItemOf<typeof flagResource>
export type WritableFlag = ItemOf<{ readonly fields: typeof writableFields }>

/**
 * The most bytes that the definitions of a project's flags may have together, deleted flags aside: an evaluation may answer
 * with all of their payloads. Source: ours.
 */
export const projectFlagsBytesMax = 32 * 1024 * 1024
/** What each flag counts in addition to its texts, so that this also bounds the number of flags. */
export const flagOverheadBytes = 512

/** The fields that one write sets. */
export type FlagFields = Partial<WritableFlag>

export const flagDefaults = buildInitialFields({ fields: writableFields }) as Omit<WritableFlag, 'key'>

const writableNames = Object.keys(writableFields) as (keyof WritableFlag)[]

/** All fields that a writer decided, for a write that gives them to another flag. */
export function pickWritableFields(flag: Flag): WritableFlag {
  return Object.fromEntries(writableNames.map(name => [name, flag[name]])) as unknown as WritableFlag
}

/** A flag after a change, whatever made the change: an archived flag is always inactive. */
export function applyFlagChange(current: Flag, change: Partial<Flag>): Flag {
  const flag = deactivateIfArchived({ ...current, ...omitUndefined(change) })
  const decidesAlike =
    flag.active === current.active &&
    flag.deleted === current.deleted &&
    JSON.stringify(flag.filters) === JSON.stringify(current.filters)
  return decidesAlike ? flag : { ...flag, conditionsSinceMs: flag.updatedAtMs }
}

/** Whether a change leaves a flag unchanged; such a change makes no version. */
export function isSameDefinition(before: Flag, after: Flag): boolean {
  return (
    before.hasExperiment === after.hasExperiment &&
    writableNames.every(name =>
      name === 'filters'
        ? diffJson(before.filters, after.filters).length === 0
        : JSON.stringify(before[name]) === JSON.stringify(after[name]),
    )
  )
}

export function deactivateIfArchived<T extends Pick<Flag, 'active' | 'archived'>>(flag: T): T {
  return flag.archived && flag.active ? { ...flag, active: false } : flag
}
