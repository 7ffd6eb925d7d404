// Why a folder takes no other export than the one that it was begun with, in the options that people type.

import type { JsonObject } from '#core/json.ts'

/** @param bound what the folder was begun with, as JSON. @param asked what it is asked for now. */
export function otherExportText(folder: string, bound: string, asked: string): string {
  const [before, now] = [bound, asked].map(text => JSON.parse(text) as JsonObject) as [JsonObject, JsonObject]
  const keys = [...new Set([...Object.keys(before), ...Object.keys(now)])].toSorted()
  const differences = keys
    .filter(key => before[key] !== now[key])
    .map(key => `${optionText(key, now[key])} instead of ${optionText(key, before[key])}`)
  return (
    `${folder} holds files of another export: this call says ${differences.join(', ')}. ` +
    `Take another folder for it; the export that was begun goes on with pennon import fetch FOLDER without options.`
  )
}

/**
 * @param bound what the folder goes on with. @param asked options that were given without a source.
 * @param ignored those of `asked` that say something else.
 */
export function ignoredOptionsText(
  folder: string,
  { bound, asked, ignored }: { bound: JsonObject; asked: JsonObject; ignored: readonly string[] },
): string {
  const given = Object.keys(asked).map(key => optionText(key, asked[key]))
  const differences = ignored.map(key => `${optionText(key, asked[key])} instead of ${optionText(key, bound[key])}`)
  return (
    `Without --source the fetch into ${folder} goes on as it was begun, and this call says ${differences.join(', ')}. ` +
    `It goes on without these options; another export is begun with all of its options and in another folder: ` +
    `pennon import fetch OTHER --source ${String(bound.source)} ${given.join(' ')}`
  )
}

function optionText(key: string, value: JsonObject[string] | undefined): string {
  const option = `--${key.replaceAll('_', '-')}`
  if (value === undefined || value === false) return `no ${option}`
  return value === true ? option : `${option} ${String(value)}`
}
