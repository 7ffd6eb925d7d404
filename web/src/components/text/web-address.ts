/** Whether a text from outside may become a link: `javascript:` and the like must not. */
export function isWebAddress(text: string): boolean {
  try {
    return ['https:', 'http:'].includes(new URL(text).protocol)
  } catch {
    return false
  }
}
