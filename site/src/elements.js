// Elements of the page. Text from files is only ever set as text, never as markup.

const SVG = 'http://www.w3.org/2000/svg'

/** Return the element of the page with this id. */
export function byId(id) {
  return document.getElementById(id)
}

/** Make an HTML element with attributes and children: elements, or text. */
export function make(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children)
}

/** Make an SVG element. */
export function draw(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children)
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value)
  element.append(...children)
  return element
}
