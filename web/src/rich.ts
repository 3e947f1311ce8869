// Loaded when a text is to be rendered: Markdown without HTML, LaTeX as MathML, both made harmless by DOMPurify.
export {};
