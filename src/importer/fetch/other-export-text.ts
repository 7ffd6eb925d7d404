// Messages that a folder belongs to another export, in terms of the options that users type.

import type { JsonObject } from '#core/json.ts'

/** @param bound the folder's configuration, as JSON. @param asked the configuration of this call. */
export function formatOtherExport(folder: string, bound: string, asked: string): string {
  const [before, now] = [bound, asked].map(text => JSON.parse(text) as JsonObject) as [JsonObject, JsonObject]
  const keys = [...new Set([...Object.keys(before), ...Object.keys(now)])].toSorted()
  const differences = keys
    .filter(key => before[key] !== now[key])
    .map(key => `${formatOption(key, now[key])} instead of ${formatOption(key, before[key])}`)
  return (
    `${folder} holds files of another export: this call says ${differences.join(', ')}. ` +
    `Take another folder for it; to continue the earlier export, run pennon import fetch FOLDER without options.`
  )
}

/**
 * @param bound the folder's configuration. @param asked options that were given without a source.
 * @param ignored the keys of `asked` whose values differ.
 */
export function formatIgnoredOptions(
  folder: string,
  { bound, asked, ignored }: { bound: JsonObject; asked: JsonObject; ignored: readonly string[] },
): string {
  const given = Object.keys(asked).map(key => formatOption(key, asked[key]))
  const differences = ignored.map(key => `${formatOption(key, asked[key])} instead of ${formatOption(key, bound[key])}`)
  return (
    `Without --source the fetch into ${folder} continues as it was started, but this call says ${differences.join(', ')}. ` +
    `Omit these options to continue, or start another export, with all its options, in another folder: ` +
    `pennon import fetch OTHER --source ${String(bound.source)} ${given.join(' ')}`
  )
}

function formatOption(key: string, value: JsonObject[string] | undefined): string {
  const option = `--${key.replaceAll('_', '-')}`
  if (value === undefined || value === false) return `no ${option}`
  return value === true ? option : `${option} ${String(value)}`
}
