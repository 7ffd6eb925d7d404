/** Whether shortcuts are pressed with `⌘`. An iPad calls itself a Mac. */
export const isApple = /Mac|iP(?:hone|ad)/.test(navigator.userAgent)
