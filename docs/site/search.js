new PagefindUI({element: "#search", showSubResults: true, showImages: false, resetStyles: false});
