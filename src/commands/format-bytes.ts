const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB']

/** Formats a size for people, in the units of settings: `68.3 GiB`, `10 bytes`. */
export function formatBytes(bytes: number): string {
  let unit = 0
  let value = bytes
  // A value that would be printed as 1024.0 is shown as 1.0 of the next unit.
  for (; unit < units.length - 1 && Math.round(value * 10) >= 10_240; unit++) value /= 1024
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`
}
